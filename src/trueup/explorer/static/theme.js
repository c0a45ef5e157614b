// Light or dark, before the first paint: the system's choice unless the reader made one.
try {
  const chosen = localStorage.getItem("trueup-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // storage may be closed: the system's choice holds
}
