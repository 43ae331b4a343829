"use strict";(()=>{var e=localStorage.getItem("surefoot-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e);})();
