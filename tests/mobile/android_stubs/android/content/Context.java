package android.content;

import android.content.res.AssetManager;
import java.io.File;

/** Of Android's class, what the library calls: there is no SDK where it is compiled in tests. */
public abstract class Context {
    public static final String ACTIVITY_SERVICE = "activity";
    public static final String POWER_SERVICE = "power";

    public abstract Object getSystemService(String name);

    public abstract File getFilesDir();

    public abstract File getNoBackupFilesDir();

    public abstract AssetManager getAssets();

    public abstract Context getApplicationContext();

    public abstract void registerComponentCallbacks(ComponentCallbacks callbacks);

    public abstract void unregisterComponentCallbacks(ComponentCallbacks callbacks);
}
