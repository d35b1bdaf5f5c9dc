package android.os;

/** Of Android's class, what the library calls. */
public class PowerManager {
    public static final int THERMAL_STATUS_SEVERE = 3;
    public static final int THERMAL_STATUS_CRITICAL = 4;

    public interface OnThermalStatusChangedListener {
        void onThermalStatusChanged(int status);
    }

    public void addThermalStatusListener(OnThermalStatusChangedListener listener) {}

    public void removeThermalStatusListener(OnThermalStatusChangedListener listener) {}
}
