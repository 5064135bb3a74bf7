const IDS_A_TOKEN = 20;
/** Below the 2,000 letters of a filter, with room for what stands beside the ids. */
const LONGEST_FILTER = 1600;

/** Filters that name these ids: as many as it takes, since one holds at most 20 values a token and 2,000 letters. */
export function idFilters(ids: readonly string[]): string[] {
  const filters: string[] = [];
  let tokens: string[] = [];
  const length = () => tokens.reduce((sum, token) => sum + token.length + 1, 0);
  for (let at = 0; at < ids.length; at += IDS_A_TOKEN) {
    const token = `id:${ids.slice(at, at + IDS_A_TOKEN).join(",")}`;
    if (tokens.length > 0 && length() + token.length > LONGEST_FILTER) {
      filters.push(tokens.join(" "));
      tokens = [];
    }
    tokens.push(token);
  }
  return tokens.length > 0 ? [...filters, tokens.join(" ")] : filters;
}
