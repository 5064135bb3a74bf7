import type { ComponentChildren } from "preact";
import { CopyButton } from "./CopyButton";

interface EmptyStateProps {
  /** What would be here. */
  children: ComponentChildren;
  /** The line that makes it happen, to be copied. */
  line?: string;
  action?: ComponentChildren;
}

export function EmptyState({ children, line, action }: EmptyStateProps) {
  return (
    <div class="empty">
      <p>{children}</p>
      {line && (
        <div class="line">
          {/* A long line scrolls on a phone, also for those who have only keys. */}
          <pre tabIndex={0}>{line}</pre>
          <CopyButton text={line} label="Copy the line" />
        </div>
      )}
      {action}
    </div>
  );
}
