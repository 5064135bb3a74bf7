import { useState } from "preact/hooks";
import { Button } from "../../components/Button";
import { setQuery } from "../../router/location";
import { zone } from "../../state/prefs";
import { fromField, type Period, toField, toText } from "./period";

/** From and to, in the zone that the page shows; the address keeps them in UTC. */
export function CustomRange({ period }: { period: Period }) {
  const isUtc = zone.value === "UTC";
  const [from, setFrom] = useState(() => toField(period.since, isUtc));
  const [to, setTo] = useState(() => toField(period.until, isUtc));
  const since = fromField(from, isUtc);
  const until = fromField(to, isUtc);
  const wrong = since === null || until === null ? "Both times are needed." : since >= until ? "The first time must be before the second." : null;
  const show = () => since !== null && until !== null && setQuery({ since: toText(since), until: toText(until) });
  return (
    <form
      class="report-range"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wrong) show();
      }}
    >
      <input class="input" type="datetime-local" aria-label={`From, ${zone.value}`} value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
      <span class="dim">to</span>
      <input class="input" type="datetime-local" aria-label={`To, ${zone.value}`} value={to} onInput={(event) => setTo(event.currentTarget.value)} />
      <Button type="submit" off={wrong}>
        Show
      </Button>
    </form>
  );
}
