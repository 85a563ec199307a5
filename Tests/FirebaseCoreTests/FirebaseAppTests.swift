// Tests apps by name: configuration, lookup, deletion and misuse. Misuse traps, so each of these cases runs
// in a separate process.

import FirebaseCore
import Foundation
import Locking
import Testing

@Suite("Apps", .timeLimit(.minutes(10)))
struct FirebaseAppTests {
  private func options(project: String = "demo") -> FirebaseOptions {
    let options = FirebaseOptions(googleAppID: "1:1234567890:ios:0123456789abcdef", gcmSenderID: "1234567890")
    options.projectID = project
    return options
  }

  @Test("a named app is found by name and listed, until it is deleted")
  func namedApp() async throws {
    let name = "named-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options(project: "p1"))
    let app = try #require(FirebaseApp.app(name: name))
    #expect(app.name == name)
    #expect(app.options.projectID == "p1")
    #expect(FirebaseApp.allApps?[name] === app)
    #expect(FirebaseApp.app(name: name) === app)
    #expect(app.isDataCollectionDefaultEnabled)
    app.isDataCollectionDefaultEnabled = false
    #expect(!app.isDataCollectionDefaultEnabled)

    #expect(await app.delete())
    #expect(FirebaseApp.app(name: name) == nil)
    #expect(FirebaseApp.allApps?[name] == nil)
    #expect(await app.delete() == false)
  }

  @Test("the name of a deleted app can be configured again, and its deletion handler runs only once")
  func reconfigure() async throws {
    let name = "again-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options())
    let first = try #require(FirebaseApp.app(name: name))
    let teardownCount = Guarded(0)
    first.onDelete { teardownCount.withLock { $0 += 1 } }
    let deleted = await withCheckedContinuation { continuation in
      first.delete { continuation.resume(returning: $0) }
    }
    #expect(deleted)
    #expect(await first.delete() == false)
    #expect(teardownCount.withLock { $0 } == 1)
    FirebaseApp.configure(name: name, options: options())
    #expect(FirebaseApp.app(name: name) !== first)
    _ = await FirebaseApp.app(name: name)?.delete()
  }

  @Test("an app's options are returned as copies")
  func copies() async throws {
    let name = "copies-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options(project: "before"))
    let app = try #require(FirebaseApp.app(name: name))
    let copy = app.options
    copy.projectID = "after"
    #expect(app.options.projectID == "before")
    #expect(app.options != copy)
    _ = await app.delete()
  }

  @Test("configuration posts the notification that products observe")
  func notification() async throws {
    let name = "posted-\(UUID().uuidString)"
    let seen = Guarded<[String]>([])
    let token = NotificationCenter.default.addObserver(
      forName: Notification.Name("FIRAppReadyToConfigureSDKNotification"), object: nil, queue: nil
    ) { notification in
      let appName = notification.userInfo?["FIRAppNameKey"] as? String ?? ""
      seen.withLock { $0.append(appName) }
    }
    FirebaseApp.configure(name: name, options: options())
    NotificationCenter.default.removeObserver(token)
    #expect(seen.withLock { $0 }.contains(name))
    _ = await FirebaseApp.app(name: name)?.delete()
  }

  @Test("configuring the default app twice traps")
  func secondDefault() async {
    await #expect(processExitsWith: .success) {
      let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
      precondition(FirebaseApp.allApps == nil)
      FirebaseApp.configure(options: options)
      precondition(FirebaseApp.app()?.name == "__FIRAPP_DEFAULT")
    }
    await #expect(processExitsWith: .failure) {
      let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
      FirebaseApp.configure(options: options)
      FirebaseApp.configure(options: options)
    }
  }

  @Test("configure() without a GoogleService-Info.plist traps")
  func withoutFile() async {
    await #expect(processExitsWith: .failure) { FirebaseApp.configure() }
  }

  @Test("illegal names trap")
  func illegalNames() async {
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(name: "", options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    }
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(
        name: "a b", options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    }
  }

  @Test("a malformed application id traps")
  func malformedAppID() async {
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(options: FirebaseOptions(googleAppID: "nonsense", gcmSenderID: "1"))
    }
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(options: FirebaseOptions(googleAppID: "1:x:ios:ab", gcmSenderID: "1"))
    }
  }

  @Test("changing options after configure() traps")
  func frozenOptions() async {
    await #expect(processExitsWith: .failure) {
      let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
      FirebaseApp.configure(options: options)
      options.projectID = "late"
    }
  }
}
