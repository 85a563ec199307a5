// Tests misuse that Google's SDK documents as an error: it traps with a message. Each case runs in a separate
// process.

import FirebaseAuth
import FirebaseCore
import Foundation
import Testing

/// Configures the default app in the process of one case.
private func configure(apiKey: String?) {
  let options = FirebaseOptions(googleAppID: "1:1:ios:ab", gcmSenderID: "1")
  options.apiKey = apiKey
  FirebaseApp.configure(options: options)
}

@Suite("Misuse of FirebaseAuth", .timeLimit(.minutes(2))) struct AuthMisuseTests {
  @Test("Auth traps without a configured app")
  func noApp() async {
    await #expect(processExitsWith: .failure) { _ = Auth.auth() }
  }

  @Test("Auth traps without an API key")
  func noKey() async {
    await #expect(processExitsWith: .failure) {
      configure(apiKey: nil)
      _ = Auth.auth()
    }
    await #expect(processExitsWith: .failure) {
      configure(apiKey: "")
      _ = Auth.auth()
    }
  }

  @Test("an empty host and a server URL without a host trap; valid values do not")
  func servers() async {
    await #expect(processExitsWith: .failure) {
      configure(apiKey: "k")
      Auth.auth().useEmulator(withHost: "", port: 9099)
    }
    await #expect(processExitsWith: .failure) {
      configure(apiKey: "k")
      if let url = URL(string: "auth.example.org") { Auth.auth().useServer(at: url) }
    }
    await #expect(processExitsWith: .success) {
      setenv("XDG_DATA_HOME", NSTemporaryDirectory(), 1)
      configure(apiKey: "k")
      Auth.auth().useEmulator(withHost: "::1", port: 9099)
      if let url = URL(string: "https://auth.example.org/base") { Auth.auth().useServer(at: url) }
      exit(0)
    }
  }

  @Test("a sign-in link without handleCodeInApp traps")
  func signInLink() async {
    await #expect(processExitsWith: .failure) {
      configure(apiKey: "k")
      try await Auth.auth().sendSignInLink(toEmail: "a@b.c", actionCodeSettings: ActionCodeSettings())
    }
  }
}
