import { computed, signal } from "@preact/signals";

const pointerDown = signal(false);
const textSelected = signal(false);

/** How many menus and dialogs are open. */
export const openLayers = signal(0);
/** How many rows are chosen in the table of the view. */
export const chosenRows = signal(0);

addEventListener("pointerdown", () => (pointerDown.value = true), { capture: true, passive: true });
for (const name of ["pointerup", "pointercancel"]) {
  addEventListener(name, () => (pointerDown.value = false), { capture: true, passive: true });
}
document.addEventListener("selectionchange", () => {
  const selection = document.getSelection();
  textSelected.value = selection !== null && !selection.isCollapsed && selection.toString() !== "";
});

/** True while the reader is at something: then only the status of rows may change, nothing may move. */
export const readerIsBusy = computed(
  () => pointerDown.value || textSelected.value || openLayers.value > 0 || chosenRows.value > 0,
);
