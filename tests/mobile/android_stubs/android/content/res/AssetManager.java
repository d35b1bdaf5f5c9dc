package android.content.res;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Assets out of a folder. */
public final class AssetManager {
    private final File folder;

    public AssetManager(File folder) {
        this.folder = folder;
    }

    public InputStream open(String name) throws IOException {
        return new FileInputStream(new File(folder, name));
    }

    public String[] list(String name) {
        return new File(folder, name).list();
    }
}
