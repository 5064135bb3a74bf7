// Runs before the first draw, so that a dark page never flashes white.
(function () {
  var theme = null;
  try {
    theme = (JSON.parse(localStorage.getItem("tickwork") || "{}") || {}).theme;
  } catch (error) {
    // Storage may be closed to us; the system's choice is good enough.
  }
  if (theme !== "light" && theme !== "dark") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  document.documentElement.dataset.theme = theme;
})();
