package android.app;

import android.content.Context;

/** Android's class, with nothing of its own that the sample takes. */
public abstract class Application extends Context {}
