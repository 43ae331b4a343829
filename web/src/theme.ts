// Runs before the page is painted: the reader's own choice of theme, if there is one, stands above the system's.
const chosen = localStorage.getItem("surefoot-theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;

export {};
