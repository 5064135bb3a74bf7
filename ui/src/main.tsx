import { render } from "preact";
import { App } from "./app";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/layers.css";
import "./styles/blocks.css";
import "./styles/table.css";
import "./styles/filter.css";
import "./styles/charts.css";
import "./styles/task.css";
import "./styles/phone.css";

const root = document.getElementById("app");
if (root) render(<App />, root);
