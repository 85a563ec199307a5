// Compiles the examples of FirebaseAuthCombineSwift's documentation.

import FirebaseAuth
import FirebaseAuthCombineSwift

#if canImport(Combine)
  import Combine
#else
  import OpenCombine
#endif

private func follow(_ auth: Auth) -> AnyCancellable {
  let users = auth.authStateDidChangePublisher()
    .sink { user in print(user?.uid ?? "signed out") }
  return users
}

private func signIn(_ auth: Auth, _ password: String) -> AnyCancellable {
  let signedIn = auth.signIn(withEmail: "lea@example.org", password: password)
    .sink(
      receiveCompletion: { if case .failure(let error) = $0 { print("rejected:", error) } },
      receiveValue: { print("signed in as", $0.user.uid) })
  return signedIn
}
