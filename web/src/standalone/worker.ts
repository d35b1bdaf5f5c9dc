/** A worker with an engine, as one file: for pages without a bundler. */
import { serve } from "../worker/serve.js";

serve();
