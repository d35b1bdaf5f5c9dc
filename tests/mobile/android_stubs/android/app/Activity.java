package android.app;

import android.os.Bundle;

/** Of Android's class, what the sample calls. */
public class Activity {
    protected void onCreate(Bundle savedInstanceState) {}
}
