import { useResource } from "../api/resource";
import type { FailureGroup } from "../api/types/failures";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { Link } from "../router/Link";
import type { ViewProps } from "../router/routes";
import { useTitle } from "../state/page";
import { plainText } from "../text/split";
import { nameOf } from "./failures/filter";
import { GroupDetail } from "./failures/GroupDetail";
import "../styles/views/failures.css";

export default function FailureView({ params }: ViewProps<"print">) {
  const group = useResource<FailureGroup>(() => `failures/${encodeURIComponent(params.print)}`, { every: 5000 });
  const found = group.data.value;
  useTitle(found ? plainText(nameOf(found)) : "Failure", [{ label: "Failures", to: "failures" }]);
  if (found) return <GroupDetail group={found} isPage onChanged={() => void group.refresh()} />;
  if (group.error.value?.status === 404) {
    return (
      <Card>
        <EmptyState action={<Link class="btn" to="failures">All failures</Link>}>No failure has this mark. Groups are forgotten some days after they were seen last.</EmptyState>
      </Card>
    );
  }
  return <Card of={group} />;
}
