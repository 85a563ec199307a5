// Where `FirebaseApp.configure()` finds its file. Apple's apps carry it in a bundle; a program on
// Linux has no bundle worth the name, so the executable's folder and the working directory join.

import Foundation

enum DefaultOptionsFile {
  /// The paths at which a `GoogleService-Info.plist` is looked for, best first.
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
