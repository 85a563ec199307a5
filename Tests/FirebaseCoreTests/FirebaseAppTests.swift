// Apps by name: configuring, finding, deleting, and the errors of section "misuse", each of which
// stops the program and is therefore tried in a process of its own.

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

  @Test("a named app is found, listed and gone after its deletion")
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

  @Test("a deleted name can be configured again, and teardown runs once")
  func reconfigure() async throws {
    let name = "again-\(UUID().uuidString)"
    FirebaseApp.configure(name: name, options: options())
    let first = try #require(FirebaseApp.app(name: name))
    let torn = Guarded(0)
    first.onDelete { torn.withLock { $0 += 1 } }
    let deleted = await withCheckedContinuation { continuation in
      first.delete { continuation.resume(returning: $0) }
    }
    #expect(deleted)
    #expect(await first.delete() == false)
    #expect(torn.withLock { $0 } == 1)
    FirebaseApp.configure(name: name, options: options())
    #expect(FirebaseApp.app(name: name) !== first)
    _ = await FirebaseApp.app(name: name)?.delete()
  }

  @Test("options handed out are copies")
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

  @Test("configuring posts the notification that products wait for")
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

  @Test("the default app is configured once, and a second time stops the program")
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

  @Test("configure() without a GoogleService-Info.plist stops the program")
  func withoutFile() async {
    await #expect(processExitsWith: .failure) { FirebaseApp.configure() }
  }

  @Test("illegal names stop the program")
  func illegalNames() async {
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(name: "", options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    }
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(
        name: "a b", options: FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1"))
    }
  }

  @Test("a malformed application id stops the program")
  func malformedAppID() async {
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(options: FirebaseOptions(googleAppID: "nonsense", gcmSenderID: "1"))
    }
    await #expect(processExitsWith: .failure) {
      FirebaseApp.configure(options: FirebaseOptions(googleAppID: "1:x:ios:ab", gcmSenderID: "1"))
    }
  }

  @Test("changing options after configure stops the program")
  func frozenOptions() async {
    await #expect(processExitsWith: .failure) {
      let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
      FirebaseApp.configure(options: options)
      options.projectID = "late"
    }
  }
}
