package android.os;

/** Of Android's class, what the library reads. */
public class Build {
    public static class VERSION {
        public static final int SDK_INT = 36;
    }

    public static class VERSION_CODES {
        public static final int Q = 29;
    }
}
