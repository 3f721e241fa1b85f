# The formula of a Homebrew tap: Formula/vault-agent.rb
class VaultAgent < Formula
  desc "Search Markdown notes by meaning, and change them without breaking links"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@URL:aarch64-apple-darwin@"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@URL:x86_64-apple-darwin@"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@URL:aarch64-unknown-linux-gnu@"
      sha256 "@SHA256:aarch64-unknown-linux-gnu@"
    end
    on_intel do
      url "@URL:x86_64-unknown-linux-gnu@"
      sha256 "@SHA256:x86_64-unknown-linux-gnu@"
    end
  end

  def install
    bin.install "vault-agent"
    # One file serves all four commands.
    %w[vault-search vault-index vault-tools].each { |name| bin.install_symlink bin/"vault-agent" => name }
    man1.install Dir["man/*.1"]
    %w[vault-agent vault-search vault-index vault-tools].each do |name|
      bash_completion.install "completions/#{name}.bash" => name
      fish_completion.install "completions/#{name}.fish"
      zsh_completion.install "completions/_#{name}"
    end
  end

  test do
    (testpath/"notes/Bread.md").write "Knead the dough, and let it rise overnight."
    output = shell_output("#{bin}/vault-search --vault #{testpath}/notes --files --wait 60 'how to bake a loaf'")
    assert_match "Bread.md", output
  end
end
