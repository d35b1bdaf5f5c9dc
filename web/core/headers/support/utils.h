// Sources of TVM's run time include it and use nothing of it; its wheel leaves this header out.
