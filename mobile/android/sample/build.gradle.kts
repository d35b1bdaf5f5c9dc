// A sample app that chats with a model on the device. Before the build, run:
//
//   wherry package demo --target android --target android-x86_64 -o wherry
plugins {
    id("com.android.application") version "8.13.2"
    kotlin("android") version "2.3.10"
    kotlin("plugin.compose") version "2.3.10"
}

android {
    namespace = "dev.wherry.sample"
    compileSdk = 36
    defaultConfig {
        applicationId = "dev.wherry.sample"
        minSdk = 26
        targetSdk = 36
        versionCode = 1
        versionName = "1"
    }
    buildFeatures { compose = true }
    buildTypes {
        release {
            isMinifyEnabled = true
            proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
            signingConfig = signingConfigs["debug"]
        }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

kotlin { compilerOptions { jvmTarget = org.jetbrains.kotlin.gradle.dsl.JvmTarget.JVM_11 } }

dependencies {
    implementation(project(":wherry"))
    implementation(platform("androidx.compose:compose-bom:2025.08.00"))
    implementation("androidx.compose.material3:material3")
    implementation("androidx.activity:activity-compose:1.10.1")
    implementation("androidx.lifecycle:lifecycle-viewmodel-compose:2.9.2")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.10.2")
}
