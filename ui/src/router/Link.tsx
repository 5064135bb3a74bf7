import type { AnchorHTMLAttributes, ComponentChildren, TargetedMouseEvent } from "preact";
import { href, navigate, type QueryValues } from "./location";

interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href" | "onClick" | "role"> {
  /** A path of the dashboard without a leading slash; names in it are escaped by `pathOf`. */
  to: string;
  query?: QueryValues | undefined;
  role?: "menuitem" | "option";
  onClick?: (event: TargetedMouseEvent<HTMLAnchorElement>) => void;
  children?: ComponentChildren;
}

/** True if the browser should do what it does for any link: a new tab, a download. */
function isForBrowser(event: MouseEvent): boolean {
  return event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
}

/** A link to a place of the dashboard. It is a real link, so it opens in a new tab and can be copied. */
export function Link({ to, query, onClick, children, ...rest }: LinkProps) {
  const follow = (event: TargetedMouseEvent<HTMLAnchorElement>) => {
    onClick?.(event);
    if (isForBrowser(event)) return;
    event.preventDefault();
    navigate(to, query);
  };
  return (
    <a {...rest} href={href(to, query)} onClick={follow}>
      {children}
    </a>
  );
}
