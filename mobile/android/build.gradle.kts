// The library for apps, a module of theirs: `wherry package --target android` writes this folder
// beside what is native and the models. It takes no NDK. Versions of plugins are the app's, or, where
// it is built alone, those of settings.gradle.kts.
plugins {
    id("com.android.library")
    kotlin("android") // not with version 9 of Android's plugin, which compiles Kotlin itself
    id("maven-publish")
}

group = "dev.wherry"
version = "0.1.0" // of src/wherry/__init__.py

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
        kotlin.srcDir("src/android/kotlin") // beside the part that runs on any JVM, what takes Android
        jniLibs.srcDir("../jniLibs") // of the package
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
