pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}
dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
    }
}
rootProject.name = "wherry-sample"
include(":wherry")
project(":wherry").projectDir = file("wherry/android") // the folder that `wherry package` wrote
