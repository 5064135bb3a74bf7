/** Saves what an address answers, as a click on a link would. */
export function saveFrom(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

/** Saves JSON that the page has. */
export function saveJson(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  saveFrom(url, name);
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
