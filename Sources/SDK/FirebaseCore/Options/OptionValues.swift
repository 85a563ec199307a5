// The values of FirebaseOptions, and their keys in a GoogleService-Info.plist.

import Foundation

/// The values of a set of options. It is a value type, so that copies are independent.
struct OptionValues: Hashable, Sendable {
  var apiKey: String?
  var bundleID = ""
  var clientID: String?
  var gcmSenderID: String
  var projectID: String?
  var googleAppID: String
  var databaseURL: String?
  var storageBucket: String?
  var appGroupID: String?

  init(googleAppID: String, gcmSenderID: String) {
    self.googleAppID = googleAppID
    self.gcmSenderID = gcmSenderID
  }

  /// Reads a property list file. Returns nil if the file does not exist or does not contain a dictionary.
  init?(propertyListAt path: String) {
    guard let data = FileManager.default.contents(atPath: path),
      let list = try? PropertyListSerialization.propertyList(from: data, options: [], format: nil),
      let values = list as? [String: Any]
    else { return nil }
    self.init(
      googleAppID: values["GOOGLE_APP_ID"] as? String ?? "",
      gcmSenderID: values["GCM_SENDER_ID"] as? String ?? "")
    apiKey = values["API_KEY"] as? String
    bundleID = values["BUNDLE_ID"] as? String ?? ""
    clientID = values["CLIENT_ID"] as? String
    projectID = values["PROJECT_ID"] as? String
    databaseURL = values["DATABASE_URL"] as? String
    storageBucket = values["STORAGE_BUCKET"] as? String
  }

  /// Whether the application ID has the form `version:number:platform:fingerprint`.
  ///
  /// This form is checked completely only for version 1. An ID of another version is accepted if it begins
  /// with a number and a colon.
  var hasWellFormedAppID: Bool {
    let parts = googleAppID.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count > 1, let version = Int(parts[0]), version > 0 else { return false }
    guard version == 1 else { return !parts[1].isEmpty }
    guard parts.count == 4, parts.allSatisfy({ !$0.isEmpty }) else { return false }
    return parts[1].utf8.allSatisfy { (0x30...0x39).contains($0) }
      && parts[3].allSatisfy(\.isHexDigit)
  }
}
