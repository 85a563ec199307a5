// Tests options: value semantics, and the property list of the Firebase console.

import FirebaseCore
import Foundation
import Testing

@Suite("Options", .timeLimit(.minutes(10)))
struct FirebaseOptionsTests {
  private static let plist = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0"><dict>
      <key>API_KEY</key><string>key-1</string>
      <key>BUNDLE_ID</key><string>com.example.tea</string>
      <key>CLIENT_ID</key><string>client-1</string>
      <key>GCM_SENDER_ID</key><string>77</string>
      <key>PROJECT_ID</key><string>tea-shop</string>
      <key>GOOGLE_APP_ID</key><string>1:77:ios:ab12</string>
      <key>DATABASE_URL</key><string>https://tea-shop.firebaseio.com</string>
      <key>STORAGE_BUCKET</key><string>tea-shop.appspot.com</string>
      <key>IS_ADS_ENABLED</key><false/>
    </dict></plist>
    """

  private func file(_ content: String) throws -> String {
    let path = NSTemporaryDirectory() + "options-\(UUID().uuidString).plist"
    try Data(content.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test("every option in a GoogleService-Info.plist is read")
  func propertyList() throws {
    let path = try file(Self.plist)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let options = try #require(FirebaseOptions(contentsOfFile: path))
    #expect(options.apiKey == "key-1")
    #expect(options.bundleID == "com.example.tea")
    #expect(options.clientID == "client-1")
    #expect(options.gcmSenderID == "77")
    #expect(options.projectID == "tea-shop")
    #expect(options.googleAppID == "1:77:ios:ab12")
    #expect(options.databaseURL == "https://tea-shop.firebaseio.com")
    #expect(options.storageBucket == "tea-shop.appspot.com")
  }

  @Test("a missing or invalid file gives nil")
  func unusableFile() throws {
    #expect(FirebaseOptions(contentsOfFile: "/nowhere/GoogleService-Info.plist") == nil)
    let path = try file("not a property list {{{")
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(FirebaseOptions(contentsOfFile: path) == nil)
    let list = try file("<plist version=\"1.0\"><array/></plist>")
    defer { try? FileManager.default.removeItem(atPath: list) }
    #expect(FirebaseOptions(contentsOfFile: list) == nil)
  }

  @Test("copies are equal and independent")
  func copying() throws {
    let options = FirebaseOptions(googleAppID: "1:77:ios:ab12", gcmSenderID: "77")
    options.apiKey = "one"
    options.appGroupID = "group"
    let copy = try #require(options.copy() as? FirebaseOptions)
    #expect(copy == options)
    #expect(copy.hash == options.hash)
    #expect(Set([copy, options]).count == 1)
    copy.apiKey = "two"
    #expect(options.apiKey == "one")
    #expect(copy != options)
  }

  @Test("configure() reads the file in the working directory")
  func defaultFile() async {
    await #expect(processExitsWith: .success) {
      let folder = NSTemporaryDirectory() + "cwd-\(UUID().uuidString)"
      let manager = FileManager.default
      try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try Data(FirebaseOptionsTests.plist.utf8)
        .write(to: URL(fileURLWithPath: folder + "/GoogleService-Info.plist"))
      precondition(manager.changeCurrentDirectoryPath(folder))
      FirebaseApp.configure()
      precondition(FirebaseApp.app()?.options.projectID == "tea-shop")
      try manager.removeItem(atPath: folder)
    }
  }
}
