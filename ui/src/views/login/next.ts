/** Where to go after the login: only a place of the dashboard itself, whatever the address says. */
export function nextPlace(next: string | null, base: string): string {
  if (!next) return "";
  const root = new URL(base);
  let target: URL;
  try {
    target = new URL(next, root);
  } catch {
    return "";
  }
  const isOurs = target.origin === root.origin && target.pathname.startsWith(root.pathname);
  const path = target.pathname.slice(root.pathname.length);
  if (!isOurs || path.startsWith("/") || path === "login") return "";
  return `${path}${target.search}`;
}
