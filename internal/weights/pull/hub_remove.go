package pull

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxWalked bounds the files of a repository in the cache that [RemoveHub] looks at.
const maxWalked = 100_000

// Split cuts the name of a file or folder in the cache, which may lie below it, into the directory of its repository and the
// name in its snapshot; "": the folder of the snapshot. ok is false for a name of another form.
func Split(name string) (repository, file string, ok bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "models--") && len(parts) > i+2 && parts[i+1] == "snapshots" {
			return strings.Join(parts[:i+1], "/"), strings.Join(parts[i+3:], "/"), true
		}
	}
	return "", "", false
}

// RemoveHub removes files of a repository from all its snapshots, and their contents, unless other files of the repository are
// linked to them. names are those of files in a snapshot; none: all files. A repository without files goes as a whole.
func RemoveHub(c *Cache, repository string, names []string) (r TransferRemoved, err error) {
	snapshots := repository + "/snapshots"
	gone, kept := map[string]bool{}, map[string]bool{} // blobs
	var doomed []string
	walked := 0
	err = fs.WalkDir(c.Root.FS(), snapshots, func(at string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked {
			return fmt.Errorf("%s holds more than %d files; remove it yourself", c.Path(snapshots), maxWalked)
		}
		if err != nil || d.IsDir() {
			return err
		}
		_, file, _ := Split(at)
		blob := blobOf(c, at)
		if len(names) > 0 && !slices.Contains(names, file) {
			kept[blob] = true
			return nil
		}
		gone[blob] = true
		doomed = append(doomed, at)
		return nil
	})
	if err != nil {
		return r, err
	}
	if len(doomed) == 0 {
		return r, fmt.Errorf("%s holds no such file", c.Path(snapshots))
	}
	for blob := range gone {
		if blob != "" && !kept[blob] {
			doomed = append(doomed, repository+"/blobs/"+blob)
		}
	}
	for _, name := range doomed {
		if err := r.Remove(c, name); err != nil {
			return r, err
		}
	}
	if len(kept) > 0 {
		return r, nil
	}
	return r, r.RemoveAll(c, repository)
}

// blobOf returns the name of the blob to which a link leads; "": it is no such link.
func blobOf(c *Cache, link string) string {
	target, err := c.Root.Readlink(link)
	if err != nil {
		return ""
	}
	target = strings.ReplaceAll(target, `\`, "/")
	if blob := path.Base(target); path.Base(path.Dir(target)) == "blobs" && blob != "." && blob != ".." && blob != "/" {
		return blob
	}
	return ""
}
