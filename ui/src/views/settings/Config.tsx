import { useResource } from "../../api/resource";
import type { OptionRow } from "../../api/types/settings";
import { Banner } from "../../components/Banner";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { EmptyState } from "../../components/EmptyState";
import { Note } from "../../components/marks";
import { Segments } from "../../components/Segments";
import { type Column, Table } from "../../components/Table";
import { formatCount, plural } from "../../format/numbers";
import { Icon } from "../../icons/Icon";
import { setQuery } from "../../router/location";
import { useQueryParam } from "../../router/query";
import { reasonAgainst } from "../../state/session";
import { plainText } from "../../text/split";
import { Text } from "../../text/Text";
import { readValue } from "./values";

const COLUMNS: readonly Column<OptionRow>[] = [
  { id: "name", label: "Option", width: "28%", phone: 1, class: "mono", cell: (row) => <Text>{row.name}</Text> },
  { id: "value", label: "Value", cut: true, phone: 3, title: (row) => plainText(row.value), cell: (row) => <Value text={row.value} /> },
  { id: "origin", label: "Where from", width: "220px", phone: 2, cell: (row) => (row.origin === "default" ? <span class="dim">default</span> : <Note><Text>{row.origin}</Text></Note>) },
];

function Value({ text }: { text: string }) {
  const { shown, isNothing } = readValue(text);
  return isNothing ? <span class="dim">{shown}</span> : <span class="mono"><Text>{shown}</Text></span>;
}

/** Every option of the server that answers, and where each comes from. */
export function Config() {
  const reason = reasonAgainst("admin");
  return reason ? <Banner>Options tell how the server is run. {reason}</Banner> : <Options />;
}

function Options() {
  const options = useResource<OptionRow[]>(() => "config");
  const filter = useQueryParam("q");
  const which = useQueryParam("only", "all");
  const all = options.data.value ?? [];
  const isSet = all.filter((row) => row.origin !== "default");
  const wanted = filter.value.trim().toLowerCase();
  const rows = (which.value === "set" ? isSet : all).filter((row) => [row.name, row.value, row.origin].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <>
      <div class="filter settings-filter">
        <div class="fbox">
          <div class="box">
            <Icon name="search" />
            <input type="search" aria-label="Filter options" placeholder="Name, value or where it is from" value={filter.value} spellcheck={false} onInput={(event) => filter.set(event.currentTarget.value, "replace")} />
          </div>
        </div>
        <Segments
          label="Which options"
          options={[{ value: "all", label: `All ${formatCount(all.length)}` }, { value: "set", label: `Set ${formatCount(isSet.length)}` }]}
          value={which.value === "set" ? "set" : "all"}
          onChange={(next) => which.set(next, "replace")}
        />
      </div>
      <p class="sumline settings-sum">{plural(isSet.length, "option")} of this server {isSet.length === 1 ? "is" : "are"} set; the rest are defaults. An argument beats the environment, and that beats a file.</p>
      <Card of={options}>
        {rows.length > 0 ? (
          <Table label="Options" rows={rows} columns={COLUMNS} rowKey={(row) => row.name} />
        ) : (
          <EmptyState action={<Button onClick={() => setQuery({ q: null, only: null })}>Show all options</Button>}>No option fits.</EmptyState>
        )}
      </Card>
    </>
  );
}
