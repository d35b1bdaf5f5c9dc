package android.content.res;

/** Android's class, of which the library uses nothing. */
public final class Configuration {}
