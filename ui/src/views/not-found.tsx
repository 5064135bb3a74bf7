import { Button } from "../components/Button";
import { Card } from "../components/Card";
import { EmptyState } from "../components/EmptyState";
import { openPalette } from "../shell/palette";

export default function NotFoundView() {
  return (
    <Card>
      <EmptyState
        action={
          <Button icon="search" onClick={openPalette}>
            Search or jump to
          </Button>
        }
      >
        There is nothing at this address.
      </EmptyState>
    </Card>
  );
}
