import { outage } from "../api/reach";
import { ToastLayer } from "../components/ToastLayer";
import { TipLayer } from "../components/tip";
import { match, Outlet } from "../router/Outlet";
import { session } from "../state/session";
import { BottomBar } from "./BottomBar";
import { CommandPalette } from "./CommandPalette";
import { KeysDialog } from "./KeysDialog";
import { OfflineBanner } from "./OfflineBanner";
import { Sidebar } from "./Sidebar";
import { TopBar } from "./TopBar";

/** A view asks for data, which is refused until it is known who looks. An outage must not leave the page blank. */
function isUnknown(): boolean {
  return session.value === null && outage.value === null;
}

/** The frame around every view. */
export function Shell() {
  if (match.value.route.isBare) {
    return (
      <>
        <div class="bare">
          <Outlet />
        </div>
        <ToastLayer />
        <TipLayer />
      </>
    );
  }
  return (
    <>
      <div class="app">
        <a class="skip" href="#content" onClick={skipToContent}>
          Skip to the content
        </a>
        <Sidebar />
        <div class="body">
          <TopBar />
          <OfflineBanner />
          <Outlet waits={isUnknown()} />
        </div>
        <BottomBar />
      </div>
      <CommandPalette />
      <KeysDialog />
      <ToastLayer />
      <TipLayer />
    </>
  );
}

/** With a <base> the address "#content" would leave the page, so the focus is moved by hand. */
function skipToContent(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}
