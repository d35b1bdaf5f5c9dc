package android.content;

/** Android's interface. */
public interface ComponentCallbacks2 extends ComponentCallbacks {
    void onTrimMemory(int level);
}
