import type { ComponentChildren } from "preact";
import { Icon } from "../icons/Icon";
import type { IconName } from "../icons/paths";
import type { Tone } from "../icons/StatusShape";
import { Text } from "../text/Text";

interface WhyBoxProps {
  /** "Why it is not running". */
  title: string;
  /** The sentence of `explain`; it comes from the server. */
  children: string;
  /** Whose turn it is. */
  tone: Tone;
  icon?: IconName;
  /** The one action that lifts it. */
  actions?: ComponentChildren;
}

export function WhyBox({ title, children, tone, icon = "info", actions }: WhyBoxProps) {
  return (
    <section class={`why ${tone}`} aria-label={title}>
      <Icon name={icon} class={`c-${tone}`} />
      <div>
        <h3>{title}</h3>
        <p role="status">
          <Text>{children}</Text>
        </p>
      </div>
      {actions && <div class="acts">{actions}</div>}
    </section>
  );
}
