// The location of a database's cache file: below the user's data directory, by app and by database.

import FirebaseCore
import Foundation

/// Finds cache files.
enum CacheLocation {
  /// The file of a database: `<data>/firebase/<app ID>/<app name>.database/<host>_<port>_<namespace>.sqlite`.
  ///
  /// - Parameter root: the data directory; nil for the user's data directory.
  static func file(of endpoint: DatabaseEndpoint, appID: String, appName: String, root: URL?) -> URL {
    let data = root ?? dataDirectory
    let name = [endpoint.host, "\(endpoint.effectivePort)", endpoint.namespace].map(fileName)
    return data.appendingPathComponent("firebase").appendingPathComponent(fileName(appID))
      .appendingPathComponent(fileName(appName) + ".database")
      .appendingPathComponent(name.joined(separator: "_") + ".sqlite")
  }

  /// The user's data directory. On Linux it follows the XDG Base Directory Specification, which requires that
  /// a relative `XDG_DATA_HOME` is ignored. On Apple's platforms it is the Application Support directory.
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
