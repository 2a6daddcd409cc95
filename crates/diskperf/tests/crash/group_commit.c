/* Records of two threads, synced together: a record is acknowledged when a sync that began after
 * its write has ended. usage: group_commit write|check */

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS = 4, BYTES = 512, THREADS = 2 };

static int file;
static FILE *marks;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static long started, finished;
static int syncing;

static void require(int is_so, const char *what)
{
    if (!is_so) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void fill(char *record, long number)
{
    memset(record, 'a' + (int)number, BYTES);
}

/* Waits for a sync that begins after this call. */
static void sync_group(void)
{
    pthread_mutex_lock(&mutex);
    long needed = started + 1;
    while (finished < needed) {
        if (syncing) {
            pthread_cond_wait(&ended, &mutex);
            continue;
        }
        syncing = 1;
        long own = ++started;
        pthread_mutex_unlock(&mutex);
        require(fdatasync(file) == 0, "fdatasync");
        pthread_mutex_lock(&mutex);
        finished = own;
        syncing = 0;
        pthread_cond_broadcast(&ended);
    }
    pthread_mutex_unlock(&mutex);
}

static void *write_records(void *first)
{
    char record[BYTES];
    for (long number = (long)first; number < RECORDS * THREADS; number += THREADS) {
        fill(record, number);
        require(pwrite(file, record, BYTES, BYTES * number) == BYTES, "pwrite");
        sync_group();
        pthread_mutex_lock(&mutex);
        fprintf(marks, "durable %ld\n", number);
        fflush(marks);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void check(void)
{
    char found[BYTES], record[BYTES];
    long number;
    FILE *durable = fopen(getenv("DISKPERF_DURABLE"), "r");
    require(durable != NULL, "the list of marks");
    file = open("records", O_RDONLY);
    while (fscanf(durable, "%ld", &number) == 1) {
        fill(record, number);
        require(pread(file, found, BYTES, BYTES * number) == BYTES, "a record is lost");
        require(memcmp(found, record, BYTES) == 0, "a record has other contents");
    }
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "check") == 0) {
        check();
        return 0;
    }
    pthread_t threads[THREADS];
    file = open("records", O_CREAT | O_RDWR, 0644);
    int directory = open(".", O_RDONLY);
    require(file >= 0 && fsync(file) == 0 && fsync(directory) == 0, "records");
    marks = fopen(getenv("DISKPERF_MARKS"), "a");
    require(marks != NULL, "marks");
    for (long first = 0; first < THREADS; first++)
        require(pthread_create(&threads[first], NULL, write_records, (void *)first) == 0, "thread");
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
