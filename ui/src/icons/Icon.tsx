import { ICONS, type IconName } from "./paths";

interface IconProps {
  name: IconName;
  /** Adds to the classes, for a colour or a size. */
  class?: string;
}

/** A drawing beside words. It says nothing by itself, so readers skip it. */
export function Icon({ name, class: extra }: IconProps) {
  const classes = extra ? `i ${extra}` : "i";
  if (name === "theme") {
    return (
      <svg class={classes} viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="5.5" />
        <path d="M8 2.5v11a5.5 5.5 0 0 0 0-11z" fill="currentColor" />
      </svg>
    );
  }
  return (
    <svg class={classes} viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} stroke-width={name === "more" ? 2 : undefined} />
    </svg>
  );
}
