// The Gradle module of the library for apps: `wherry package --target android` writes this folder
// next to the native libraries and the models. It needs no NDK. The app's build sets the versions
// of plugins, or settings.gradle.kts if the module is built alone.
plugins {
    id("com.android.library")
    kotlin("android") // omitted for version 9 of Android's plugin, which compiles Kotlin itself
    id("maven-publish")
}

group = "dev.wherry"
version = "0.1.0" // must equal the version in src/wherry/__init__.py

android {
    namespace = "dev.wherry"
    compileSdk = 36
    defaultConfig {
        minSdk = 26
        consumerProguardFiles("consumer-rules.pro")
        aarMetadata { minCompileSdk = 26 }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    sourceSets["main"].apply {
        // adds the code that needs Android to the code that runs on any JVM
        kotlin.srcDir("src/android/kotlin")
        kotlin.srcDir("src/work/kotlin") // downloads by WorkManager
        jniLibs.srcDir("../jniLibs") // native libraries that `wherry package` wrote
        assets.srcDir("../assets")
    }
    publishing { singleVariant("release") { withSourcesJar() } }
}

kotlin {
    explicitApi()
    compilerOptions { jvmTarget = org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_1_8 }
}

dependencies {
    api("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.10.2")
    api("org.jetbrains.kotlinx:kotlinx-serialization-json:1.9.0")
    // Only apps that use BackgroundDownload have it at run time: their builds name it themselves.
    compileOnly("androidx.work:work-runtime:2.10.1")
}

publishing {
    publications {
        register<MavenPublication>("release") {
            artifactId = "wherry"
            afterEvaluate { from(components["release"]) }
            pom {
                name = "Wherry"
                description = "Language models in an app, on the device."
                licenses {
                    license {
                        name = "Apache-2.0"
                        url = "https://www.apache.org/licenses/LICENSE-2.0"
                    }
                }
            }
        }
    }
}
