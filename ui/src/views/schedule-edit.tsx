import { useMemo } from "preact/hooks";
import { useResource } from "../api/resource";
import type { Schedule } from "../api/types/schedules";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Link } from "../router/Link";
import { pathOf } from "../router/location";
import { useQueryParam } from "../router/query";
import type { ViewProps } from "../router/routes";
import { useTitle } from "../state/page";
import { zone } from "../state/prefs";
import { plainText } from "../text/split";
import { EditForm } from "./schedules/EditForm";
import { draftOf, emptyDraft } from "./schedules/form";
import "../styles/views/schedules.css";

/** Both a new schedule (without an id in the address) and a change of one. */
export default function ScheduleEditView({ params }: ViewProps<"id">) {
  const id: string | undefined = params.id;
  return id === undefined ? <NewSchedule /> : <EditSchedule id={id} />;
}

function EditSchedule({ id }: { id: string }) {
  const schedule = useResource<Schedule>(() => pathOf("schedules", id));
  const found = schedule.data.value;
  useTitle("Edit", [
    { label: "Schedules", to: "schedules" },
    { label: plainText(found?.name ?? id), to: pathOf("schedules", id) },
  ]);
  const start = useMemo(() => found && draftOf(found), [found]);
  if (found && start) return <EditForm key={found.updated_at} start={start} schedule={found} />;
  return <Unread of={schedule} />;
}

function NewSchedule() {
  const clone = useQueryParam("clone");
  const source = useResource<Schedule>(() => (clone.value ? pathOf("schedules", clone.value) : null));
  useTitle("New schedule", [{ label: "Schedules", to: "schedules" }]);
  const found = source.data.value;
  const start = useMemo(() => (found ? { ...draftOf(found), id: "", name: "" } : emptyDraft(zone.peek())), [found]);
  if (clone.value && !found) return <Unread of={source} />;
  return <EditForm key={found?.id ?? "new"} start={start} schedule={null} />;
}

function Unread({ of }: { of: ReturnType<typeof useResource<Schedule>> }) {
  if (of.error.value?.status !== 404) return <Card of={of} />;
  return (
    <Card>
      <EmptyState action={<Link class="btn" to="schedules">All schedules</Link>}>No schedule has this id. It may have been deleted.</EmptyState>
    </Card>
  );
}
