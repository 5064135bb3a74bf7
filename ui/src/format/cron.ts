/** A cron line with one space between its fields, so that equal lines look equal. */
export function tidyCron(line: string): string {
  return line.trim().split(/\s+/).join(" ");
}
