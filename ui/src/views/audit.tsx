import { apiUrl, get } from "../api/client";
import { withQuery } from "../api/resource";
import type { AuditPage, Journal } from "../api/types/events";
import { Banner } from "../components/Banner";
import { FilterBar, type ValueSource } from "../components/FilterBar";
import { Segments } from "../components/Segments";
import { Icon } from "../icons/Icon";
import { setQuery } from "../router/location";
import { useQueryParam } from "../router/query";
import { reasonAgainst } from "../state/session";
import "../styles/views/audit.css";
import "../styles/views/events.css";
import { Entries } from "./audit/Entries";
import { AUDIT_QUALIFIERS, isName, readFilter, valuesAmong, writeFilter } from "./audit/filter";
import { LogTabs } from "./events/LogTabs";

const JOURNALS = [
  { value: "changes", label: "Changes" },
  { value: "submits", label: "Submits" },
  { value: "refusals", label: "Refusals" },
  { value: "sign_ins", label: "Sign-ins" },
] as const;

function asJournal(text: string): Journal {
  return JOURNALS.find((one) => one.value === text)?.value ?? "changes";
}

/** What newer entries of the journal have there; the log itself finds those that fit. */
function valuesIn(journal: Journal): ValueSource {
  return async (name, typed, signal) => {
    if (!isName(name)) return [];
    const page = await get<AuditPage>(withQuery("audit", { journal, [name]: typed }), { signal });
    return valuesAmong(page.items, name).map((text) => ({ text }));
  };
}

/** Who did what. */
export default function AuditView() {
  const reason = reasonAgainst("operator");
  return (
    <>
      <LogTabs current="audit" />
      {reason ? <Banner>The audit log names people and what they did. {reason}</Banner> : <Log />}
    </>
  );
}

function Log() {
  const chosen = useQueryParam("journal", "changes");
  const q = useQueryParam("q");
  const journal = asJournal(chosen.value);
  const { filter, mistake } = readFilter(q.value);
  const setFilter = (text: string) => setQuery({ q: text, open: null });
  return (
    <>
      <div class="filter audit-head">
        <Segments label="Journal" options={JOURNALS} value={journal} onChange={(next) => setQuery({ journal: next === "changes" ? null : next, open: null })} />
        <FilterBar label="Filter the audit log" placeholder="Filter: who: what: target:" value={q.value} onChange={setFilter} qualifiers={AUDIT_QUALIFIERS} values={valuesIn(journal)} error={mistake} />
        <a class="btn" href={apiUrl("audit/export", { journal, ...filter })} download={`audit-${journal}.csv`}>
          <Icon name="download" />
          <span>
            <span class="no-phone">Export </span>CSV
          </span>
        </a>
      </div>
      <Entries journal={journal} filter={filter} onClear={() => setFilter("")} key={`${journal} ${writeFilter(filter)}`} />
    </>
  );
}
