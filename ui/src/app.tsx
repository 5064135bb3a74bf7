import { startKeys } from "./keys/registry";
import { startLive } from "./live/stream";
import { preloadViews } from "./router/Outlet";
import { bindGlobalKeys } from "./shell/globalKeys";
import { Shell } from "./shell/Shell";
import { startSession } from "./shell/session";
import { startCounts } from "./state/counts";

startSession();
startCounts();
startLive();
startKeys();
bindGlobalKeys();
preloadViews();

export function App() {
  return <Shell />;
}
