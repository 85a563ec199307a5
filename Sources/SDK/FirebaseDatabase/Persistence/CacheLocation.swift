// The location of a database's cache file: below the user's data directory, by app and by database.

import FirebaseCore
import Foundation

/// Finds cache files.
enum CacheLocation {
  /// The file of a database: `<data>/firebase/<app ID>/<app name>.database/<host>_<port>_<namespace>.sqlite`.
  ///
  /// - Parameter root: the data directory; nil for the user's.
  static func file(of endpoint: DatabaseEndpoint, appID: String, appName: String, root: URL?) -> URL {
    let data = root ?? dataDirectory
    let name = [endpoint.host, "\(endpoint.effectivePort)", endpoint.namespace].map(fileName)
    return data.appendingPathComponent("firebase").appendingPathComponent(fileName(appID))
      .appendingPathComponent(fileName(appName) + ".database")
      .appendingPathComponent(name.joined(separator: "_") + ".sqlite")
  }

  /// On Linux the directory of the XDG Base Directory Specification, which demands that a relative `XDG_DATA_HOME` is
  /// ignored. On Apple's platforms the Application Support directory.
  private static var dataDirectory: URL {
    #if canImport(Darwin)
      let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
      return folders.first ?? URL(fileURLWithPath: NSHomeDirectory())
    #else
      if let path = ProcessInfo.processInfo.environment["XDG_DATA_HOME"], path.hasPrefix("/") {
        return URL(fileURLWithPath: path)
      }
      return URL(fileURLWithPath: NSHomeDirectory() + "/.local/share")
    #endif
  }

  /// Encodes a name so that it is one component of a path.
  private static func fileName(_ name: String) -> String {
    let allowed = CharacterSet(
      charactersIn: "-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
    let text = name.addingPercentEncoding(withAllowedCharacters: allowed) ?? "name"
    return text.hasPrefix(".") ? "%2E" + text.dropFirst() : text
  }
}
