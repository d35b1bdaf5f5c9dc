package android.os;

/** Android's class, of which the sample uses nothing. */
public final class Bundle {}
