import { serve } from "wherry/worker";

serve();
