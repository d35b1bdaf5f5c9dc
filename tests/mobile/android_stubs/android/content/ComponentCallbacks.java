package android.content;

import android.content.res.Configuration;

/** Android's interface. */
public interface ComponentCallbacks {
    void onConfigurationChanged(Configuration configuration);

    void onLowMemory();
}
