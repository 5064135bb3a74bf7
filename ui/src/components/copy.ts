import { toast } from "./toasts";

/** Puts text on the clipboard. Without a secure connection the browser keeps that door shut: then by the old way. */
export async function copyText(text: string, what = "It"): Promise<boolean> {
  const done = (await viaClipboard(text)) || viaSelection(text);
  toast({ text: done ? `${what} is on the clipboard.` : "The browser does not allow copying here.", seconds: 2 });
  return done;
}

async function viaClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function viaSelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr";
  const host = document.querySelector("dialog[open]") ?? document.body;
  host.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
