import { Segments } from "../components/Segments";
import { range, setRange } from "../state/range";

const OPTIONS = [
  { value: "1h", label: "1 h" },
  { value: "24h", label: "24 h" },
  { value: "7d", label: "7 d" },
] as const;

/** How far back the view looks. It is in the address, and remembered by the browser. */
export function RangeSwitch() {
  return <Segments label="Time range" options={OPTIONS} value={range.value} onChange={setRange} />;
}
