// The library for apps. What is native, and the models, an app has of `wherry package`: this takes
// no NDK.
plugins {
    id("com.android.library") version "8.13.0"
    kotlin("android") version "2.3.10"
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
    // Beside the part that runs on any JVM, what takes Android.
    sourceSets["main"].kotlin.srcDir("src/android/kotlin")
    publishing { singleVariant("release") { withSourcesJar() } }
}

kotlin {
    explicitApi()
    compilerOptions {
        jvmTarget = org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_1_8
        allWarningsAsErrors = true
    }
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
