package android.app;

/** Of Android's class, what the library calls. */
public class ActivityManager {
    public static class MemoryInfo {
        public long availMem;
        public long threshold;
    }

    public void getMemoryInfo(MemoryInfo outInfo) {}
}
