// Finds the default options file for `FirebaseApp.configure()`. On Apple's platforms it is in the app's
// bundle. On Linux it is in the folder of the executable or in the working directory.

import Foundation

enum DefaultOptionsFile {
  /// The possible paths of `GoogleService-Info.plist`, in the order in which they are tried.
  static var candidates: [String] {
    let bundles = [Bundle.main] + Bundle.allBundles
    var paths = bundles.compactMap { $0.path(forResource: "GoogleService-Info", ofType: "plist") }
    if let executable = CommandLine.arguments.first {
      let folder = URL(fileURLWithPath: executable).deletingLastPathComponent()
      paths.append(folder.appendingPathComponent("GoogleService-Info.plist").path)
    }
    paths.append(FileManager.default.currentDirectoryPath + "/GoogleService-Info.plist")
    return paths
  }
}
